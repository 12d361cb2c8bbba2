"""Springs of joints: what motor minus link follows from, and resonances where only motors are measured."""
