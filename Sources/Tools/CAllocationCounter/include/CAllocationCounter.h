#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Returns whether this build counts allocations. It does not under a sanitizer, which needs malloc for itself.
bool allocation_counter_is_active(void);

/// Returns how many blocks this process has requested from the heap since it started, in all its threads. Growing a
/// block in place counts as well; freeing one does not.
uint64_t allocation_counter_value(void);

/// Do nothing. `.ci/counts` has callgrind write its counts for a thread whenever that thread calls one of these.
void counting_mark_calling(void);
void counting_mark_answering(void);
