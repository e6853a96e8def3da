#include <openssl/sha.h>

#define CC_SHA1_DIGEST_LENGTH 20
typedef unsigned int CC_LONG;

static inline unsigned char *CC_SHA1(const void *data, CC_LONG count, unsigned char *digest) {
    return SHA1(data, count, digest);
}
