/* CRC-32 and CRC-32C for every extension: the fastest way this processor has, chosen once when the extension loads.

   mq_crc32(crc, p, n), mq_crc32c(crc, p, n): start with 0, feed the result back in to go on, as with zlib.crc32.

   | processor                                  | long input                    | short input                 |
   |--------------------------------------------|-------------------------------|-----------------------------|
   | x86-64, AVX-512 + VPCLMULQDQ (run time)    | fold 4 x 512 bits, from 256 B | as in the next line         |
   | x86-64, PCLMULQDQ + SSE4.2 (run time)      | fold 4 x 128 bits, from 64 B, | tables below 16 B;          |
   |                                            | 1 x 128 bits from 16 B        | CRC-32C: crc32q below 128 B |
   | AArch64 with the CRC extension             | crc32x, crc32cx               | the same                    |
   | anything else, MSVC                        | slicing by 8                  | slicing by 8                |

   Folding (Gopal et al., Intel 2009). Registers hold polynomials with the highest power in bit 0, so a product comes
   out multiplied by x; the constants are reflected and shifted such that this cancels out. For a distance of d bits:
   A * x^d = A_first * (x^(d+32) mod P) + A_second * (x^(d-32) mod P), the halves of 64 bits.
   The last 128 bits: first half * (x^95 mod P) + second half leaves 96 bits, V (64) and W (32); then Barrett:
   q = V * (x^96 / P) / x^64, and the remainder is W + the low 32 coefficients of q * P. */

#ifndef MQ_CRC_H
#define MQ_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__)
#  define MQ_CRC_X86 1
#  include <immintrin.h>
#  if (defined(__clang__) && __clang_major__ >= 8) || (!defined(__clang__) && __GNUC__ >= 9)
#    define MQ_CRC_WIDE 1
#  endif
#elif defined(__GNUC__) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#  ifdef __ARM_FEATURE_CRC32
#    define MQ_CRC_ARM 1
#  elif defined(__linux__)
#    define MQ_CRC_ARM 1
#    define MQ_CRC_ARM_ASK 1
#    include <sys/auxv.h>
#  endif
#endif

#if defined(__GNUC__)
#  define MQ_CRC_UNUSED __attribute__((unused))
#else
#  define MQ_CRC_UNUSED
#endif

/* Steps take and give the raw register: the complement of what callers see. */
typedef uint32_t (*mq_crc_step)(uint32_t raw, const uint8_t *p, size_t n);

typedef struct {
    uint32_t slices[8][256];
    uint64_t by2048[2], by1536[2], by1024[2], by512[2], by384[2], by256[2], by128[2]; /* fold by so many bits */
    uint64_t last[2], barrett[2];                                                      /* x^95 mod P, -; x^96 / P, P */
    mq_crc_step step;
} mq_crc_kind;

static mq_crc_kind mq_crc_gzip = {
    .by2048 = {0x11542778a, 0x1322d1430}, .by1536 = {0x1821d8bc0, 0x12e958ac4}, .by1024 = {0x1e88ef372, 0x14a7fe880},
    .by512 = {0x154442bd4, 0x1c6e41596}, .by384 = {0x03db1ecdc, 0x174359406}, .by256 = {0x0f1da05aa, 0x15a546366},
    .by128 = {0x1751997d0, 0x0ccaa009e}, .last = {0x0ccaa009e, 0}, .barrett = {0xb4e5b025f7011641, 0x1db710641},
};
static mq_crc_kind mq_crc_castagnoli = {
    .by2048 = {0x0dcb17aa4, 0x0b9e02b86}, .by1536 = {0x0a87ab8a8, 0x0ab7aff2a}, .by1024 = {0x06992cea2, 0x00d3b6092},
    .by512 = {0x0740eef02, 0x09e4addf8}, .by384 = {0x01c291d04, 0x1d82c63da}, .by256 = {0x1384aa63a, 0x0ba4fc28e},
    .by128 = {0x0f20c0dfe, 0x14cd00bd6}, .last = {0x0493c7d27, 0}, .barrett = {0x4869ec38dea713f1, 0x105ec76f1},
};

static void mq_crc_tables(mq_crc_kind *kind, uint32_t polynomial) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t raw = byte;
        for (int bit = 0; bit < 8; bit++) raw = (raw >> 1) ^ (polynomial & (0u - (raw & 1)));
        kind->slices[0][byte] = raw;
    }
    for (int slice = 1; slice < 8; slice++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = kind->slices[slice - 1][byte];
            kind->slices[slice][byte] = (before >> 8) ^ kind->slices[0][before & 0xff];
        }
}

/* ---- portable: slicing by 8; bytes are put together by hand, so the byte order of the machine does not matter ---- */

static inline uint32_t mq_crc_slice(const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n) {
    const uint32_t (*t)[256] = kind->slices;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = raw ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        raw = t[7][low & 0xff] ^ t[6][(low >> 8) & 0xff] ^ t[5][(low >> 16) & 0xff] ^ t[4][low >> 24]
            ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
    }
    for (; n; n--, p++) raw = (raw >> 8) ^ t[0][(raw ^ *p) & 0xff];
    return raw;
}

static uint32_t mq_crc32_slice(uint32_t raw, const uint8_t *p, size_t n) { return mq_crc_slice(&mq_crc_gzip, raw, p, n); }

static uint32_t mq_crc32c_slice(uint32_t raw, const uint8_t *p, size_t n) {
    return mq_crc_slice(&mq_crc_castagnoli, raw, p, n);
}

#ifdef MQ_CRC_X86
/* ---- x86-64 ---- */

#if defined(__clang__) && __clang_major__ >= 14
#  define MQ_CRC_BASE "sse4.2,crc32,pclmul" /* there crc32 can be off while SSE4.2 is on; older ones do not know it */
#else
#  define MQ_CRC_BASE "sse4.2,pclmul"
#endif
#define MQ_CRC_CLMUL __attribute__((target(MQ_CRC_BASE)))

MQ_CRC_CLMUL static uint32_t mq_crc32c_instruction(uint32_t raw, const uint8_t *p, size_t n) {
    uint64_t wide = raw, word;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    raw = (uint32_t)wide;
    if (n & 4) {
        uint32_t half;
        memcpy(&half, p, 4);
        raw = _mm_crc32_u32(raw, half);
        p += 4;
    }
    for (n &= 3; n; n--, p++) raw = _mm_crc32_u8(raw, *p);
    return raw;
}

/* `x` moved on by the distance of `k`, onto `y`. */
MQ_CRC_CLMUL static inline __m128i mq_crc_fold(__m128i x, __m128i k, __m128i y) {
    return _mm_xor_si128(y, _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)));
}

MQ_CRC_CLMUL static inline __m128i mq_crc_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }

/* Bytes of a register moved by n places: mq_crc_places + n moves the first n to the end, + 16 + n the rest to the front;
   0x80 gives a zero. */
static const uint8_t mq_crc_places[48] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
};

/* Folds what is left: whole 16s, then n < 16 bytes together with the 16 bytes before them (which `p - 16` may read), and
   reduces the last 128 bits. */
MQ_CRC_CLMUL static inline uint32_t mq_crc_finish(const mq_crc_kind *kind, __m128i x, const uint8_t *p, size_t n) {
    __m128i k = mq_crc_load(kind->by128), barrett = mq_crc_load(kind->barrett), q;
    for (; n >= 16; n -= 16, p += 16) x = mq_crc_fold(x, k, mq_crc_load(p));
    if (n) {
        __m128i front = mq_crc_load(mq_crc_places + 16 + n);
        __m128i first = _mm_shuffle_epi8(x, mq_crc_load(mq_crc_places + n));
        __m128i rest = _mm_blendv_epi8(_mm_shuffle_epi8(x, front), mq_crc_load(p + n - 16), front);
        x = mq_crc_fold(first, k, rest);
    }
    x = _mm_xor_si128(_mm_clmulepi64_si128(x, mq_crc_load(kind->last), 0x00), _mm_srli_si128(x, 8));
    q = _mm_clmulepi64_si128(x, barrett, 0x00);
    x = _mm_xor_si128(x, _mm_clmulepi64_si128(q, barrett, 0x10));
    return (uint32_t)_mm_extract_epi32(x, 2);
}

MQ_CRC_CLMUL static inline __m128i mq_crc_first(uint32_t raw, const uint8_t *p) {
    return _mm_xor_si128(mq_crc_load(p), _mm_cvtsi32_si128((int)raw));
}

MQ_CRC_CLMUL static inline uint32_t mq_crc_fold_128(
    const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n
) {
    __m128i k = mq_crc_load(kind->by512);
    __m128i a = mq_crc_first(raw, p), b = mq_crc_load(p + 16), c = mq_crc_load(p + 32), d = mq_crc_load(p + 48);
    for (n -= 64, p += 64; n >= 64; n -= 64, p += 64) {
        a = mq_crc_fold(a, k, mq_crc_load(p));
        b = mq_crc_fold(b, k, mq_crc_load(p + 16));
        c = mq_crc_fold(c, k, mq_crc_load(p + 32));
        d = mq_crc_fold(d, k, mq_crc_load(p + 48));
    }
    d = mq_crc_fold(a, mq_crc_load(kind->by384), d);
    d = mq_crc_fold(b, mq_crc_load(kind->by256), d);
    d = mq_crc_fold(c, mq_crc_load(kind->by128), d);
    return mq_crc_finish(kind, d, p, n);
}

MQ_CRC_CLMUL static uint32_t mq_crc32_clmul(uint32_t raw, const uint8_t *p, size_t n) {
    if (n >= 64) return mq_crc_fold_128(&mq_crc_gzip, raw, p, n);
    if (n >= 16) return mq_crc_finish(&mq_crc_gzip, mq_crc_first(raw, p), p + 16, n - 16);
    return mq_crc32_slice(raw, p, n);
}

MQ_CRC_CLMUL static uint32_t mq_crc32c_clmul(uint32_t raw, const uint8_t *p, size_t n) {
    if (n >= 128) return mq_crc_fold_128(&mq_crc_castagnoli, raw, p, n);
    return mq_crc32c_instruction(raw, p, n);
}

#ifdef MQ_CRC_WIDE
#define MQ_CRC_AVX512 __attribute__((target(MQ_CRC_BASE ",avx512f,vpclmulqdq")))

MQ_CRC_AVX512 static inline __m512i mq_crc_fold_wide(__m512i x, __m512i k, __m512i y) {
    __m512i low = _mm512_clmulepi64_epi128(x, k, 0x00), high = _mm512_clmulepi64_epi128(x, k, 0x11);
    return _mm512_ternarylogic_epi64(low, high, y, 0x96); /* 0x96: the exclusive or of all three */
}

MQ_CRC_AVX512 static inline __m512i mq_crc_spread(const uint64_t k[2]) {
    return _mm512_broadcast_i32x4(mq_crc_load(k));
}

MQ_CRC_AVX512 static inline uint32_t mq_crc_fold_512(
    const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n
) {
    __m512i k = mq_crc_spread(kind->by2048);
    __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)raw)));
    __m512i b = _mm512_loadu_si512(p + 64), c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
    for (n -= 256, p += 256; n >= 256; n -= 256, p += 256) {
        a = mq_crc_fold_wide(a, k, _mm512_loadu_si512(p));
        b = mq_crc_fold_wide(b, k, _mm512_loadu_si512(p + 64));
        c = mq_crc_fold_wide(c, k, _mm512_loadu_si512(p + 128));
        d = mq_crc_fold_wide(d, k, _mm512_loadu_si512(p + 192));
    }
    k = mq_crc_spread(kind->by512);
    a = mq_crc_fold_wide(a, mq_crc_spread(kind->by1536), d);
    b = mq_crc_fold_wide(b, mq_crc_spread(kind->by1024), a);
    d = mq_crc_fold_wide(c, k, b);
    for (; n >= 64; n -= 64, p += 64) d = mq_crc_fold_wide(d, k, _mm512_loadu_si512(p));
    __m128i x = _mm512_extracti32x4_epi32(d, 3);
    x = mq_crc_fold(_mm512_castsi512_si128(d), mq_crc_load(kind->by384), x);
    x = mq_crc_fold(_mm512_extracti32x4_epi32(d, 1), mq_crc_load(kind->by256), x);
    x = mq_crc_fold(_mm512_extracti32x4_epi32(d, 2), mq_crc_load(kind->by128), x);
    return mq_crc_finish(kind, x, p, n);
}

MQ_CRC_AVX512 static uint32_t mq_crc32_wide(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 256) return mq_crc32_clmul(raw, p, n);
    return mq_crc_fold_512(&mq_crc_gzip, raw, p, n);
}

MQ_CRC_AVX512 static uint32_t mq_crc32c_wide(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 256) return mq_crc32c_clmul(raw, p, n);
    return mq_crc_fold_512(&mq_crc_castagnoli, raw, p, n);
}
#endif

static void mq_crc_choose(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return;
    mq_crc_gzip.step = mq_crc32_clmul;
    mq_crc_castagnoli.step = mq_crc32c_clmul;
#ifdef MQ_CRC_WIDE
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq")) return;
    mq_crc_gzip.step = mq_crc32_wide;
    mq_crc_castagnoli.step = mq_crc32c_wide;
#endif
}

#elif defined(MQ_CRC_ARM)
/* ---- AArch64: one instruction per 8 bytes, written as assembly so that no compiler flag is needed ---- */

#define MQ_CRC_ARM_STEP(name, wide_op, byte_op)                                                             \
    static uint32_t name(uint32_t raw, const uint8_t *p, size_t n) {                                        \
        uint64_t word;                                                                                      \
        for (; n >= 8; n -= 8, p += 8) {                                                                    \
            memcpy(&word, p, 8);                                                                            \
            __asm__(".arch_extension crc\n\t" wide_op " %w0, %w0, %x1" : "+r"(raw) : "r"(word));            \
        }                                                                                                   \
        for (; n; n--, p++)                                                                                 \
            __asm__(".arch_extension crc\n\t" byte_op " %w0, %w0, %w1" : "+r"(raw) : "r"((uint32_t)*p));    \
        return raw;                                                                                         \
    }

MQ_CRC_ARM_STEP(mq_crc32_arm, "crc32x", "crc32b")
MQ_CRC_ARM_STEP(mq_crc32c_arm, "crc32cx", "crc32cb")

static void mq_crc_choose(void) {
#ifdef MQ_CRC_ARM_ASK
    if (!(getauxval(AT_HWCAP) & (1 << 7))) return; /* HWCAP_CRC32 */
#endif
    mq_crc_gzip.step = mq_crc32_arm;
    mq_crc_castagnoli.step = mq_crc32c_arm;
}

#else
static void mq_crc_choose(void) {}
#endif

/* ---- the two calls ---- */

#if defined(__GNUC__)
__attribute__((constructor))
#endif
static void mq_crc_start(void) {
    mq_crc_tables(&mq_crc_gzip, 0xedb88320u);
    mq_crc_tables(&mq_crc_castagnoli, 0x82f63b78u);
    mq_crc_gzip.step = mq_crc32_slice;
    mq_crc_castagnoli.step = mq_crc32c_slice;
    mq_crc_choose();
}

static inline mq_crc_step mq_crc_ready(const mq_crc_kind *kind) {
#if !defined(__GNUC__)
    if (!kind->step) mq_crc_start(); /* no constructors: the first caller does it, a second one writes the same */
#endif
    return kind->step;
}

MQ_CRC_UNUSED static uint32_t mq_crc32(uint32_t crc, const uint8_t *p, size_t n) {
    return ~mq_crc_ready(&mq_crc_gzip)(~crc, p, n);
}

MQ_CRC_UNUSED static uint32_t mq_crc32c(uint32_t crc, const uint8_t *p, size_t n) {
    return ~mq_crc_ready(&mq_crc_castagnoli)(~crc, p, n);
}

#endif
