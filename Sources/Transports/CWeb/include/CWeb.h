// The module for browsers, built into the library, and the compression of pages.
#pragma once

#include <stddef.h>

// The bytes of nigh.js, and how many there are.
const unsigned char *nigh_web_module(void);
size_t nigh_web_module_size(void);

// Compresses bytes as browsers read them (gzip). Returns the length, or 0 if it has no room.
size_t nigh_web_compress(const void *bytes, size_t count, void *result, size_t room);
