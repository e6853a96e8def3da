// The page that guests of our programs get, built into them.
#pragma once

#include <stddef.h>

typedef struct {
    const char *path;
    const char *type;
    const unsigned char *bytes;
    size_t size;
} CPageFile;

// The files of the page, and how many there are.
const CPageFile *nigh_page_files(void);
size_t nigh_page_file_count(void);
