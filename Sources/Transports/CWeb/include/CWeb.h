// The module for browsers, built into the library.
#pragma once

#include <stddef.h>

// The bytes of nigh.js, and how many there are.
const unsigned char *nigh_web_module(void);
size_t nigh_web_module_size(void);
