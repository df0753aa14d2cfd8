/* A load that costs next to nothing: one request again and again, a window of them under way, replies only measured.

   usage: load PORT GREETING GREETED REQUEST REPLIES WINDOW TOTAL
   GREETING and REQUEST are files of whole frames; RocketMQ's and Pulsar's both begin with four bytes of length. The
   greeting is sent first and answered by GREETED frames. Each request is answered by REPLIES frames; TOTAL requests are
   sent, at most WINDOW ahead of their replies. Prints the seconds from the first request to the last reply and the
   bytes of all replies to requests. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 4 << 20 };

typedef struct { uint8_t *data; size_t size; } file;

static file read_file(const char *path) {
    FILE *from = fopen(path, "rb");
    if (from == NULL) { perror(path); exit(2); }
    fseek(from, 0, SEEK_END);
    file f = {NULL, (size_t)ftell(from)};
    rewind(from);
    f.data = malloc(f.size + 1);
    if (f.data == NULL || fread(f.data, 1, f.size, from) != f.size) { perror(path); exit(2); }
    fclose(from);
    return f;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Frames are counted as their bytes go by: what is left of the one at hand, and the length word being gathered. */
static uint8_t *room;
static uint32_t left, word, word_size;
static uint64_t frames, bytes;

static void count(size_t got) {
    const uint8_t *p = room, *end = room + got;
    bytes += got;
    while (p < end) {
        if (left > 0) {
            size_t step = (size_t)(end - p) < left ? (size_t)(end - p) : left;
            p += step;
            left -= (uint32_t)step;
        } else {
            word = word << 8 | *p++;
            if (++word_size < 4) continue;
            left = word;
            word = word_size = 0;
            if (left == 0) exit(3);
        }
        if (left == 0) frames++;
    }
}

static int receive(int sock, int flags) {
    ssize_t got = recv(sock, room, ROOM, flags);
    if (got == 0) { fprintf(stderr, "closed by the broker after %llu frames\n", (unsigned long long)frames); exit(3); }
    if (got < 0) return 0;
    count((size_t)got);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 8) return 2;
    file greeting = read_file(argv[2]), request = read_file(argv[4]);
    uint64_t greeted = strtoull(argv[3], NULL, 10), replies = strtoull(argv[5], NULL, 10);
    uint64_t window = strtoull(argv[6], NULL, 10), total = strtoull(argv[7], NULL, 10), sent = 0;
    int sock = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    if (connect(sock, (struct sockaddr *)&to, sizeof to) != 0) { perror("connect"); return 2; }
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    room = malloc(ROOM);
    if (send(sock, greeting.data, greeting.size, 0) != (ssize_t)greeting.size) return 3;
    while (frames < greeted) receive(sock, 0);
    frames = bytes = 0;
    size_t at = 0; /* in the request at hand */
    double start = now();
    while (frames < total * replies) {
        int may = sent < total && sent * replies < frames + window * replies;
        if (may) {
            ssize_t n = send(sock, request.data + at, request.size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0 && (at += (size_t)n) == request.size) { sent++; at = 0; }
            if (n > 0 && sent * replies < frames + window * replies) continue;
        }
        if (!receive(sock, MSG_DONTWAIT)) {
            struct pollfd p = {sock, (short)(POLLIN | (may ? POLLOUT : 0)), 0};
            if (poll(&p, 1, 10000) == 0) { fprintf(stderr, "no reply in 10 s\n"); return 3; }
        }
    }
    printf("%.6f %llu\n", now() - start, (unsigned long long)bytes);
    return 0;
}
