#include "CWeb.h"

// The toolchain's compiler has had #embed since before it could be told of C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char module[] = {
#embed "../Web/Script/nigh.js"
};

const unsigned char *nigh_web_module(void) { return module; }

size_t nigh_web_module_size(void) { return sizeof module; }
