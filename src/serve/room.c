/* room.c: see room.h. */
#include "serve/room.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

static const uint64_t STEP = UINT64_C(8) << 20, NEVER = UINT64_MAX;

void td_room_take(struct td_room *room, int file, uint64_t size)
{
    while (room->taken < size) {
        bool got = fallocate(file, FALLOC_FL_KEEP_SIZE, (off_t)room->taken, (off_t)STEP) == 0;
        room->taken = got ? room->taken + STEP : NEVER; /* the write itself will tell if there is no space */
    }
}

void td_room_end(struct td_room *room, int file, uint64_t size)
{
    if (room->taken > size)
        (void)!ftruncate(file, (off_t)size); /* it is the file's size already; what lies behind goes */
    room->taken = 0;
}
