"""What is exported beside the dynamics of trees and loops: motors, propellers, the observer."""
