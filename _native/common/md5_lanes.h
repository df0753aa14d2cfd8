/* One width of MD5 in lanes: md5.h includes it with MQ_MD5_LANES, MQ_MD5_NAME and MQ_MD5_TARGET, each time anew. */

MQ_MD5_TARGET static void MQ_MD5_NAME(const mq_md5_text *texts, size_t count, uint64_t *heads) {
#if MQ_MD5_LANES > 1
    typedef uint32_t lanes __attribute__((vector_size(4 * MQ_MD5_LANES), may_alias));
    uint32_t words[16][MQ_MD5_LANES] __attribute__((aligned(4 * MQ_MD5_LANES)));
    uint32_t live[MQ_MD5_LANES] __attribute__((aligned(4 * MQ_MD5_LANES)));
    uint32_t found[2][MQ_MD5_LANES] __attribute__((aligned(4 * MQ_MD5_LANES)));
    const lanes zero = {0};
#else
    typedef uint32_t lanes;
    uint32_t words[16][1], live[1], found[2][1];
    const lanes zero = 0;
#endif
    const lanes *m = (const lanes *)words;
    lanes sum_a = zero + 0x67452301u, sum_b = zero + 0xefcdab89u, sum_c = zero + 0x98badcfeu, sum_d = zero + 0x10325476u;
    size_t most = 0;
    for (size_t lane = 0; lane < count; lane++)
        if (texts[lane].blocks > most) most = texts[lane].blocks;
    for (size_t block = 0; block < most; block++) {
        lanes a = sum_a, b = sum_b, c = sum_c, d = sum_d;
        for (size_t lane = 0; lane < MQ_MD5_LANES; lane++) {
            int more = lane < count && block < texts[lane].blocks; /* shorter texts are done */
            const uint8_t *p = more ? texts[lane].start + 64 * block : mq_md5_nothing;
            for (size_t word = 0; word < 16; word++) words[word][lane] = mq_md5_little(p + 4 * word);
            live[lane] = more ? 0xffffffffu : 0;
        }
        for (int i = 0; i < 16; i += 4) {
            MQ_MD5_STEP(MQ_MD5_F, a, b, c, d, i, i, 7)
            MQ_MD5_STEP(MQ_MD5_F, d, a, b, c, i + 1, i + 1, 12)
            MQ_MD5_STEP(MQ_MD5_F, c, d, a, b, i + 2, i + 2, 17)
            MQ_MD5_STEP(MQ_MD5_F, b, c, d, a, i + 3, i + 3, 22)
        }
        for (int i = 0; i < 16; i += 4) {
            MQ_MD5_STEP(MQ_MD5_G, a, b, c, d, 5 * i + 1, 16 + i, 5)
            MQ_MD5_STEP(MQ_MD5_G, d, a, b, c, 5 * i + 6, 17 + i, 9)
            MQ_MD5_STEP(MQ_MD5_G, c, d, a, b, 5 * i + 11, 18 + i, 14)
            MQ_MD5_STEP(MQ_MD5_G, b, c, d, a, 5 * i + 16, 19 + i, 20)
        }
        for (int i = 0; i < 16; i += 4) {
            MQ_MD5_STEP(MQ_MD5_H, a, b, c, d, 3 * i + 5, 32 + i, 4)
            MQ_MD5_STEP(MQ_MD5_H, d, a, b, c, 3 * i + 8, 33 + i, 11)
            MQ_MD5_STEP(MQ_MD5_H, c, d, a, b, 3 * i + 11, 34 + i, 16)
            MQ_MD5_STEP(MQ_MD5_H, b, c, d, a, 3 * i + 14, 35 + i, 23)
        }
        for (int i = 0; i < 16; i += 4) {
            MQ_MD5_STEP(MQ_MD5_I, a, b, c, d, 7 * i, 48 + i, 6)
            MQ_MD5_STEP(MQ_MD5_I, d, a, b, c, 7 * i + 7, 49 + i, 10)
            MQ_MD5_STEP(MQ_MD5_I, c, d, a, b, 7 * i + 14, 50 + i, 15)
            MQ_MD5_STEP(MQ_MD5_I, b, c, d, a, 7 * i + 21, 51 + i, 21)
        }
        const lanes mask = *(const lanes *)live;
        sum_a += a & mask;
        sum_b += b & mask;
        sum_c += c & mask;
        sum_d += d & mask;
    }
    memcpy(found[0], &sum_a, sizeof sum_a);
    memcpy(found[1], &sum_b, sizeof sum_b);
    for (size_t lane = 0; lane < count; lane++)
        heads[lane] = (uint64_t)mq_md5_swapped(found[0][lane]) << 32 | mq_md5_swapped(found[1][lane]);
}

#undef MQ_MD5_LANES
#undef MQ_MD5_NAME
#undef MQ_MD5_TARGET
