import Glibc
import ProgramSupport

StandardStreams.begin(for: Benchmark.name)
exit(await Benchmark.run(Array(CommandLine.arguments.dropFirst())))
