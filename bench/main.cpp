#include "command_line.hpp"

int main(int argc, char** argv) { return rondo::bench::run_command(argc, argv); }
