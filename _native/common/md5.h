/* MD5 of many short texts at once, one per lane of a vector register: for hash rings, not for secrets.

   mq_md5_heads(texts, count, heads): the first 8 bytes of each digest as a big-endian number; up to MQ_MD5_MOST texts.
   It takes as many at a time as the processor has lanes (16 with AVX-512, 8 with AVX2, 4 with any vector unit that GCC
   or clang knows, else 1), chosen once when the extension loads. */

#ifndef MQ_MD5_HEADER
#define MQ_MD5_HEADER

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MQ_MD5_MOST 16

#define MQ_MD5_PADDING 72 /* bytes that must be free behind a text */

typedef struct {
    const uint8_t *start; /* a text padded by mq_md5_pad */
    size_t blocks;
} mq_md5_text;

static const uint32_t mq_md5_table[64] = { /* the integer part of 2^32 * abs(sin(i + 1)) */
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const uint8_t mq_md5_nothing[64] = {0};

static inline uint32_t mq_md5_little(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t mq_md5_swapped(uint32_t word) {
    return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
}

/* Appends the end mark and the length in bits, which fill up the last of the blocks that are given back. */
static inline size_t mq_md5_pad(uint8_t *text, size_t size) {
    size_t blocks = (size + 8) / 64 + 1;
    uint64_t bits = (uint64_t)size * 8;
    memset(text + size, 0, MQ_MD5_PADDING);
    text[size] = 0x80;
    for (int byte = 0; byte < 8; byte++) text[blocks * 64 - 8 + byte] = (uint8_t)(bits >> 8 * byte);
    return blocks;
}

#define MQ_MD5_F(x, y, z) (z ^ (x & (y ^ z)))
#define MQ_MD5_G(x, y, z) (y ^ (z & (x ^ y)))
#define MQ_MD5_H(x, y, z) (x ^ y ^ z)
#define MQ_MD5_I(x, y, z) (y ^ (x | ~z))
#define MQ_MD5_STEP(function, a, b, c, d, place, number, turn)                 \
    a += function(b, c, d) + m[(place) & 15] + mq_md5_table[number];           \
    a = b + (a << turn | a >> (32 - turn));

#define MQ_MD5_LANES 1
#define MQ_MD5_NAME mq_md5_1
#define MQ_MD5_TARGET
#include "md5_lanes.h"

#if defined(__GNUC__)
#define MQ_MD5_LANES 4
#define MQ_MD5_NAME mq_md5_4
#define MQ_MD5_TARGET
#include "md5_lanes.h"
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define MQ_MD5_LANES 8
#define MQ_MD5_NAME mq_md5_8
#define MQ_MD5_TARGET __attribute__((target("avx2")))
#include "md5_lanes.h"

#define MQ_MD5_LANES 16
#define MQ_MD5_NAME mq_md5_16
#define MQ_MD5_TARGET __attribute__((target("avx512f")))
#include "md5_lanes.h"
#endif

typedef void (*mq_md5_way)(const mq_md5_text *texts, size_t count, uint64_t *heads);

static mq_md5_way mq_md5_chosen = mq_md5_1;
static size_t mq_md5_lanes = 1;

#if defined(__GNUC__)
__attribute__((constructor)) static void mq_md5_start(void) {
    mq_md5_chosen = mq_md5_4;
    mq_md5_lanes = 4;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) mq_md5_chosen = mq_md5_8, mq_md5_lanes = 8;
    if (__builtin_cpu_supports("avx512f")) mq_md5_chosen = mq_md5_16, mq_md5_lanes = 16;
#endif
}
#endif

static inline void mq_md5_heads(const mq_md5_text *texts, size_t count, uint64_t *heads) {
    for (size_t done = 0; done < count; done += mq_md5_lanes) {
        size_t left = count - done;
        mq_md5_chosen(texts + done, left < mq_md5_lanes ? left : mq_md5_lanes, heads + done);
    }
}

#endif
