#pragma once
/* For malloc_trim(3), which Swift does not see. */
#include <malloc.h>
