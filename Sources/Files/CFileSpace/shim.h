#pragma once
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Like fallocate(2) with FALLOC_FL_KEEP_SIZE, which Swift does not see: reserves space without changing the size. */
static inline int reserve_file_space(int file, int64_t offset, int64_t length) {
    return (int)syscall(SYS_fallocate, file, 1, offset, length);
}
