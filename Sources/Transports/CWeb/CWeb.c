#include "CWeb.h"

#include <string.h>
#include <zlib.h>

// The toolchain's compiler has had #embed since before it could be told of C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char module[] = {
#embed "../Web/Script/nigh.js"
};

const unsigned char *nigh_web_module(void) { return module; }

size_t nigh_web_module_size(void) { return sizeof module; }

size_t nigh_web_compress(const void *bytes, size_t count, void *result, size_t room) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    // 16 makes it gzip.
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    stream.next_in = (Bytef *)bytes;
    stream.avail_in = (uInt)count;
    stream.next_out = result;
    stream.avail_out = (uInt)room;
    size_t length = deflate(&stream, Z_FINISH) == Z_STREAM_END ? stream.total_out : 0;
    deflateEnd(&stream);
    return length;
}
