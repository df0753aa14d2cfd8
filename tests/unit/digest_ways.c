/* Compares every way that crc.h and md5.h have on this processor with the portable one; prints what was compared.
   Built and run by test_digest.py. Exit code 1: a way disagrees. */

#include "crc.h"
#include "md5.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t data[5000];
static uint8_t padded[MQ_MD5_MOST][600];

static int same_crc(const char *name, mq_crc_step way, mq_crc_step portable) {
    for (size_t size = 0; size < 2200; size++)
        for (size_t offset = 0; offset < 20; offset += 3) {
            uint32_t raw = (uint32_t)(size * 2654435761u + offset);
            if (way(raw, data + offset, size) == portable(raw, data + offset, size)) continue;
            printf("%s differs at %zu bytes, offset %zu\n", name, size, offset);
            return 0;
        }
    printf("%s ", name);
    return 1;
}

static int same_md5(const char *name, mq_md5_way way, size_t lanes) {
    mq_md5_text texts[MQ_MD5_MOST];
    uint64_t expected[MQ_MD5_MOST], found[MQ_MD5_MOST];
    for (int round = 0; round < 4000; round++) {
        size_t count = 1 + (size_t)rand() % lanes;
        for (size_t text = 0; text < count; text++) {
            size_t size = (size_t)rand() % (round & 1 ? 130 : 500);
            memcpy(padded[text], data + rand() % 4000, size);
            texts[text].start = padded[text];
            texts[text].blocks = mq_md5_pad(padded[text], size);
            mq_md5_1(texts + text, 1, expected + text);
        }
        way(texts, count, found);
        if (memcmp(expected, found, count * sizeof *found) == 0) continue;
        printf("%s differs in round %d\n", name, round);
        return 0;
    }
    printf("%s ", name);
    return 1;
}

int main(void) {
    int good = 1;
    for (size_t place = 0; place < sizeof data; place++) data[place] = (uint8_t)rand();
    good &= same_crc("crc32", mq_crc_gzip.step, mq_crc32_slice);
    good &= same_crc("crc32c", mq_crc_castagnoli.step, mq_crc32c_slice);
    good &= same_md5("md5", mq_md5_chosen, mq_md5_lanes);
#if defined(__GNUC__)
    good &= same_md5("md5x4", mq_md5_4, 4);
#endif
#ifdef MQ_CRC_X86
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        good &= same_crc("crc32-clmul", mq_crc32_clmul, mq_crc32_slice);
        good &= same_crc("crc32c-clmul", mq_crc32c_clmul, mq_crc32c_slice);
        good &= same_crc("crc32c-instruction", mq_crc32c_instruction, mq_crc32c_slice);
    }
    if (__builtin_cpu_supports("avx2")) good &= same_md5("md5x8", mq_md5_8, 8);
    if (__builtin_cpu_supports("avx512f")) good &= same_md5("md5x16", mq_md5_16, 16);
#endif
    printf("\n");
    return !good;
}
