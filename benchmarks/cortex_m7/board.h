/* A Cortex-M7 as QEMU has it (mps2-an500): what it counts, and words to the machine that it runs on. */
#ifndef BOARD_H
#define BOARD_H

/* Write `name value`, a line. */
void report(const char *name, unsigned value);
/* Like that of the bits of a number. */
void report_float(const char *name, float value);
/* Bytes of stack that a call takes. */
unsigned stack_of(void (*call)(void));
/* Ticks of SysTick that so many calls take; with less than 2^24 of them. */
unsigned ticks_of(void (*call)(void), unsigned calls);

#endif
