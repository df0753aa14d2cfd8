/* Scanning property text (name 0x01 value 0x02, again and again) and JSON strings, sixteen bytes at a time where SSE2
   is there.

   Everything here works inside [text, text + size), which a cursor has checked. */

#ifndef MQ_SCAN_H
#define MQ_SCAN_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && defined(__GNUC__)
#  define MQ_SCAN_SSE2 1
#  include <emmintrin.h>
#endif

#define MQ_NAME_END 1
#define MQ_VALUE_END 2

/* Whether a separator is among the bytes: no name or value may hold one. */
static inline int mq_separates(const uint8_t *p, int64_t size) {
#ifdef MQ_SCAN_SSE2
    const __m128i name_end = _mm_set1_epi8(MQ_NAME_END), value_end = _mm_set1_epi8(MQ_VALUE_END);
    for (; size >= 16; p += 16, size -= 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)p);
        if (_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, name_end), _mm_cmpeq_epi8(block, value_end)))) return 1;
    }
#endif
    for (; size > 0; p++, size--)
        if (*p == MQ_NAME_END || *p == MQ_VALUE_END) return 1;
    return 0;
}

/* The first byte that JSON does not let stand in a string as it is, a quote or a backslash; or the end. */
static inline const uint8_t *mq_json_plain(const uint8_t *at, const uint8_t *end) {
#ifdef MQ_SCAN_SSE2
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
    for (; end - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)at);
        __m128i odd = _mm_cmpeq_epi8(_mm_min_epu8(block, control), block);
        odd = _mm_or_si128(odd, _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
        unsigned found = (unsigned)_mm_movemask_epi8(odd);
        if (found) return at + __builtin_ctz(found);
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && *at > 0x1F) at++;
    return at;
}

typedef struct {
    const uint8_t *name, *value;
    int32_t name_size, value_size;
} mq_entry;

/* Up to the next separator of values, or the end. */
static inline int32_t mq_value_size(const uint8_t *value, const uint8_t *end) {
#ifdef MQ_SCAN_SSE2
    if (end - value >= 16) { /* most values are short */
        __m128i block = _mm_loadu_si128((const __m128i *)value);
        unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(MQ_VALUE_END)));
        if (found) return __builtin_ctz(found);
    }
#endif
    const uint8_t *stop = memchr(value, MQ_VALUE_END, end - value);
    return (int32_t)((stop ? stop : end) - value);
}

/* Whether an entry called `name` starts at `at` with a value; then where the value is. */
static inline int mq_entry_here(const uint8_t *at, const uint8_t *end, const char *name, int32_t n, mq_entry *out) {
    if (end - at < n + 2 || at[n] != MQ_NAME_END || at[n + 1] == MQ_VALUE_END || memcmp(at, name, n) != 0) return 0;
    out->name = at;
    out->name_size = n;
    out->value = at + n + 1;
    out->value_size = mq_value_size(out->value, end);
    return 1;
}

#ifdef MQ_SCAN_SSE2
/* The last entry called `name` that starts at one of the sixteen places from `low` on whose bit is in `wanted`: a
   value's end is before it, a name's end behind the name. Reads from low - 1 to low + n + 15. */
static inline int mq_find_among(const uint8_t *low, unsigned wanted, const uint8_t *end, const char *name, int32_t n,
                                mq_entry *out) {
    __m128i before = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(low - 1)), _mm_set1_epi8(MQ_VALUE_END));
    __m128i behind = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(low + n)), _mm_set1_epi8(MQ_NAME_END));
    unsigned found = (unsigned)_mm_movemask_epi8(_mm_and_si128(before, behind)) & wanted;
    while (found) {
        int bit = 31 - __builtin_clz(found);
        if (mq_entry_here(low + bit, end, name, n, out)) return 1;
        found &= ~(1u << bit);
    }
    return 0;
}
#endif

/* The last entry called `name`, as a dict made of the text would have it; 0 if there is none. `n` is at least 1. */
static inline int mq_find_entry(const uint8_t *text, int32_t size, const char *name, int32_t n, mq_entry *out) {
    const uint8_t *end = text + size;
    int32_t at = size - n - 2; /* the last place where an entry with a value can start */
#ifdef MQ_SCAN_SSE2
    for (; at >= 16; at -= 16)
        if (mq_find_among(text + at - 15, 0xFFFF, end, name, n, out)) return 1;
    if (at > 0 && size >= n + 17) { /* the first sixteen, of which those above `at` were looked at */
        if (mq_find_among(text + 1, (1u << at) - 1, end, name, n, out)) return 1;
        at = 0;
    }
#endif
    for (; at > 0; at--)
        if (text[at - 1] == MQ_VALUE_END && mq_entry_here(text + at, end, name, n, out)) return 1;
    return at == 0 && mq_entry_here(text, end, name, n, out);
}

/* Where the separators are, in order: 2 * place, + 1 for a value's end. `out` has room for one per byte. */
static inline int32_t mq_separators(const uint8_t *text, int32_t size, uint16_t *out) {
    int32_t count = 0, at = 0;
#ifdef MQ_SCAN_SSE2
    const __m128i name_end = _mm_set1_epi8(MQ_NAME_END), value_end = _mm_set1_epi8(MQ_VALUE_END);
    for (; size - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(text + at));
        unsigned values = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, value_end));
        unsigned found = values | (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, name_end));
        for (; found; found &= found - 1) {
            int bit = __builtin_ctz(found);
            out[count++] = (uint16_t)(2 * (at + bit) + (values >> bit & 1));
        }
    }
#endif
    for (; at < size; at++)
        if (text[at] == MQ_NAME_END || text[at] == MQ_VALUE_END)
            out[count++] = (uint16_t)(2 * at + (text[at] == MQ_VALUE_END));
    return count;
}

/* Entries of a text, given its separators: `next` is the separator to go on with, `start` where the entry starts. */
typedef struct {
    const uint8_t *text;
    const uint16_t *separators;
    int32_t size, count, next, start;
} mq_entries;

static inline mq_entries mq_open_entries(const uint8_t *text, int32_t size, uint16_t *scratch) {
    mq_entries e = {text, scratch, size, mq_separators(text, size, scratch), 0, 0};
    return e;
}

/* The next entry with a name and a value; 0 behind the last. */
static inline int mq_next_entry(mq_entries *e, mq_entry *out) {
    while (e->start < e->size) {
        int32_t start = e->start, middle = -1, stop = e->size;
        while (e->next < e->count) {
            uint16_t separator = e->separators[e->next++];
            if (separator & 1) { stop = separator >> 1; break; }
            if (middle < 0) middle = separator >> 1;
        }
        e->start = stop + 1;
        if (middle > start && stop > middle + 1) {
            out->name = e->text + start;
            out->name_size = middle - start;
            out->value = e->text + middle + 1;
            out->value_size = stop - middle - 1;
            return 1;
        }
    }
    return 0;
}

#endif
