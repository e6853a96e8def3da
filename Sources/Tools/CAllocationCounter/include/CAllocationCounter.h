#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Whether allocations are counted in this build. Under a sanitizer they are not: it needs malloc for itself.
bool allocation_counter_is_active(void);

/// How many blocks this process has asked the heap for since it started, in all its threads. Growing a block in place
/// counts as well; giving one back does not.
uint64_t allocation_counter_value(void);
