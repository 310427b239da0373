/* gpu.h: how busy the GPUs are, as their drivers tell.
 *
 * NVIDIA's NVML and AMD's ROCm SMI are opened at run time where they exist; nothing is needed to build, and
 * nothing happens on a machine without them. Asking costs some microseconds to a millisecond: once a second
 * is plenty. Not for several threads at once.
 */
#ifndef TD_RECORD_GPU_H
#define TD_RECORD_GPU_H

#include <stdbool.h>

struct td_gpu;

struct td_gpu_sample {
    double utilisation; /* percent of the time since the driver last looked */
    double memory;      /* bytes in use on the device, by anybody */
};

/* NULL where there is no GPU, or nobody to ask. */
struct td_gpu *td_gpu_open(void);
int td_gpu_count(const struct td_gpu *gpu);

/* False when the driver does not know. */
bool td_gpu_sample(struct td_gpu *gpu, int index, struct td_gpu_sample *out);

/* Takes NULL too. */
void td_gpu_close(struct td_gpu **gpu);

#endif
