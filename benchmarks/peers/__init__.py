"""What others offer for the same work, each as good as its authors and we can make it."""
