"""What an identification is shown as: pictures, one page, and figures as JSON."""
