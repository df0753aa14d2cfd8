/* CRC-32 and CRC-32C for every extension: the fastest way this processor has, chosen once when the extension loads.

   mq_crc32(crc, p, n), mq_crc32c(crc, p, n): start with 0, feed the result back in to go on, as with zlib.crc32.

   | processor                                  | long input                    | short input and tails       |
   |--------------------------------------------|-------------------------------|-----------------------------|
   | x86-64, AVX-512 + VPCLMULQDQ (run time)    | fold 4 x 512 bits, from 256 B | as in the next line         |
   | x86-64, PCLMULQDQ + SSE4.2 (run time)      | fold 4 x 128 bits, from 64 B  | fold, tables; CRC-32C:      |
   |                                            | (CRC-32C: from 128 B)         | crc32q                      |
   | AArch64 with the CRC extension             | crc32x, crc32cx               | the same                    |
   | anything else, MSVC                        | slicing by 8                  | slicing by 8                |

   Folding (Gopal et al., Intel 2009): x^a * A = (A_low * (x^(a+32) mod P)) ^ (A_high * (x^(a-32) mod P)), bits
   reflected and shifted by one; the last 128 bits are a message of the same CRC and go through the short way. */

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
    uint64_t by2048[2], by512[2], by384[2], by256[2], by128[2]; /* fold constants by distance in bits */
    mq_crc_step step;
} mq_crc_kind;

static mq_crc_kind mq_crc_gzip = {
    .by2048 = {0x11542778a, 0x1322d1430}, .by512 = {0x154442bd4, 0x1c6e41596}, .by384 = {0x03db1ecdc, 0x174359406},
    .by256 = {0x0f1da05aa, 0x15a546366}, .by128 = {0x1751997d0, 0x0ccaa009e},
};
static mq_crc_kind mq_crc_castagnoli = {
    .by2048 = {0x0dcb17aa4, 0x0b9e02b86}, .by512 = {0x0740eef02, 0x09e4addf8}, .by384 = {0x01c291d04, 0x1d82c63da},
    .by256 = {0x1384aa63a, 0x0ba4fc28e}, .by128 = {0x0f20c0dfe, 0x14cd00bd6},
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

/* Folds what is left in 16s, then the last 128 bits and the tail go through `rest`. */
MQ_CRC_CLMUL static inline uint32_t mq_crc_finish(
    const mq_crc_kind *kind, __m128i x, const uint8_t *p, size_t n, mq_crc_step rest
) {
    uint8_t last[32];
    __m128i k = mq_crc_load(kind->by128);
    for (; n >= 16; n -= 16, p += 16) x = mq_crc_fold(x, k, mq_crc_load(p));
    _mm_storeu_si128((__m128i *)last, x);
    if (n) memcpy(last + 16, p, n);
    return rest(0, last, 16 + n);
}

MQ_CRC_CLMUL static inline uint32_t mq_crc_short(
    const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n, mq_crc_step rest
) {
    __m128i x = _mm_xor_si128(mq_crc_load(p), _mm_cvtsi32_si128((int)raw));
    return mq_crc_finish(kind, x, p + 16, n - 16, rest);
}

MQ_CRC_CLMUL static inline uint32_t mq_crc_fold_128(
    const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n, mq_crc_step rest
) {
    __m128i k = mq_crc_load(kind->by512);
    __m128i a = _mm_xor_si128(mq_crc_load(p), _mm_cvtsi32_si128((int)raw));
    __m128i b = mq_crc_load(p + 16), c = mq_crc_load(p + 32), d = mq_crc_load(p + 48);
    for (n -= 64, p += 64; n >= 64; n -= 64, p += 64) {
        a = mq_crc_fold(a, k, mq_crc_load(p));
        b = mq_crc_fold(b, k, mq_crc_load(p + 16));
        c = mq_crc_fold(c, k, mq_crc_load(p + 32));
        d = mq_crc_fold(d, k, mq_crc_load(p + 48));
    }
    d = mq_crc_fold(a, mq_crc_load(kind->by384), d);
    d = mq_crc_fold(b, mq_crc_load(kind->by256), d);
    d = mq_crc_fold(c, mq_crc_load(kind->by128), d);
    return mq_crc_finish(kind, d, p, n, rest);
}

MQ_CRC_CLMUL static uint32_t mq_crc32_clmul(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 32) return mq_crc32_slice(raw, p, n);
    if (n < 64) return mq_crc_short(&mq_crc_gzip, raw, p, n, mq_crc32_slice);
    return mq_crc_fold_128(&mq_crc_gzip, raw, p, n, mq_crc32_slice);
}

MQ_CRC_CLMUL static uint32_t mq_crc32c_clmul(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 128) return mq_crc32c_instruction(raw, p, n);
    return mq_crc_fold_128(&mq_crc_castagnoli, raw, p, n, mq_crc32c_instruction);
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
    const mq_crc_kind *kind, uint32_t raw, const uint8_t *p, size_t n, mq_crc_step rest
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
    d = mq_crc_fold_wide(mq_crc_fold_wide(mq_crc_fold_wide(a, k, b), k, c), k, d);
    for (; n >= 64; n -= 64, p += 64) d = mq_crc_fold_wide(d, k, _mm512_loadu_si512(p));
    __m128i x = _mm512_extracti32x4_epi32(d, 3);
    x = mq_crc_fold(_mm512_castsi512_si128(d), mq_crc_load(kind->by384), x);
    x = mq_crc_fold(_mm512_extracti32x4_epi32(d, 1), mq_crc_load(kind->by256), x);
    x = mq_crc_fold(_mm512_extracti32x4_epi32(d, 2), mq_crc_load(kind->by128), x);
    return mq_crc_finish(kind, x, p, n, rest);
}

MQ_CRC_AVX512 static uint32_t mq_crc32_wide(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 256) return mq_crc32_clmul(raw, p, n);
    return mq_crc_fold_512(&mq_crc_gzip, raw, p, n, mq_crc32_slice);
}

MQ_CRC_AVX512 static uint32_t mq_crc32c_wide(uint32_t raw, const uint8_t *p, size_t n) {
    if (n < 256) return mq_crc32c_clmul(raw, p, n);
    return mq_crc_fold_512(&mq_crc_castagnoli, raw, p, n, mq_crc32c_instruction);
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
