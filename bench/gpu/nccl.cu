// NCCL beside the kernels of rondo, with as many ranks on one GPU as it allows: NCCL 2.30 or later, with
// NCCL_MULTI_RANK_GPU_ENABLE=1 and few CTAs.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <thread>
#include <vector>

namespace {

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}
void check(ncclResult_t status) {
  if (status == ncclSuccess) return;
  std::fprintf(stderr, "NCCL: %s\n", ncclGetErrorString(status));
  std::exit(1);
}

void run(ncclUniqueId id, int rank, int ranks) {
  check(cudaSetDevice(0));
  ncclComm_t comm;
  check(ncclCommInitRank(&comm, ranks, id, rank));
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr std::size_t largest = std::size_t{16} << 20;
  void* data = nullptr;
  check(cudaMalloc(&data, largest));
  check(cudaMemset(data, 0, largest));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  for (std::size_t bytes = 1024; bytes <= largest; bytes *= 4) {
    std::vector<float> times;
    for (int i = 0; i < 7; ++i) {
      constexpr int calls = 50;
      check(cudaEventRecord(begin, stream));
      for (int c = 0; c < calls; ++c) check(ncclAllReduce(data, data, bytes / 2, ncclBfloat16, ncclSum, comm, stream));
      check(cudaEventRecord(end, stream));
      check(cudaStreamSynchronize(stream));
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin, end));
      times.push_back(milliseconds / calls * 1e3F);
    }
    std::nth_element(times.begin(), times.begin() + 3, times.end());
    if (rank == 0) std::printf("%12zu %12.2f\n", bytes, static_cast<double>(times[3]));
  }
  check(cudaFree(data));
  check(ncclCommDestroy(comm));
}

}  // namespace

int main() {
  int version = 0;
  check(ncclGetVersion(&version));
  std::printf("NCCL %d.%d.%d, 2 ranks on one GPU\n%12s %12s   us per call, bfloat16, sum\n", version / 10000,
              version / 100 % 100, version % 100, "bytes", "all_reduce");
  if (version < 23000) {
    std::printf("skipped: NCCL before 2.30 refuses several ranks on one GPU\n");
    return 0;
  }
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  std::thread other(run, id, 1, 2);
  run(id, 0, 2);
  other.join();
}
