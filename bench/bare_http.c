/* bare_http.c: the least that libmicrohttpd does for a POST: read the body, answer with a constant one.
 *
 *     bare_http PORT SIZE THREADS
 *
 * The yardstick of bench_serve.py: whatever `tdbg serve` does beyond this is its own. The daemon is set up as
 * the server's is (epoll, a pool of threads), and answers with as many headers and as many bytes.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct body {
    char *bytes;
    size_t size;
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static int seen;
    const struct body *body = context;
    (void)url, (void)method, (void)version, (void)upload;
    if (!*state) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size) {
        *upload_size = 0;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->size, body->bytes, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct body body = {.size = (size_t)strtoul(argv[2], NULL, 10)};
    body.bytes = malloc(body.size + 1);
    if (!body.bytes)
        return 2;
    memset(body.bytes, ' ', body.size);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, (uint16_t)strtoul(argv[1], NULL, 10), NULL, NULL, answer, &body,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)strtoul(argv[3], NULL, 10), MHD_OPTION_END);
    if (!daemon)
        return 2;
    puts("ready");
    fflush(stdout);
    for (char byte; read(0, &byte, 1) > 0;)
        ; /* until whoever started this closes its end */
    MHD_stop_daemon(daemon);
    free(body.bytes);
    return 0;
}
