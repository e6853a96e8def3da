import Glibc
import ProgramSupport

StandardStreams.begin(for: Benchmark.name)
// In a program that waits with `await` here, Dispatch ends the main thread, and callgrind crashes.
Task.detached { exit(await Benchmark.run(Array(CommandLine.arguments.dropFirst()))) }
while true { pause() }
