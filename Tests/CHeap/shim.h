#pragma once
#include <malloc.h>

/* Bytes that this process has taken from the heap and not given back. */
static inline long heap_bytes_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return (long)(info.uordblks + info.hblkhd);
}
