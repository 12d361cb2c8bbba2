"""The main job of this package, shown: one motion, followed with three kinds of feedforward."""
