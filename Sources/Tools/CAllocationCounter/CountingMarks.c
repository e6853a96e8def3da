#include "CAllocationCounter.h"

// The compiler may neither inline these nor leave out calls of them, because a tool looks for their names.
__attribute__((noinline)) void counting_mark_calling(void) { __asm__ volatile(""); }
__attribute__((noinline)) void counting_mark_answering(void) { __asm__ volatile(""); }
