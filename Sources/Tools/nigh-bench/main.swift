import ProgramLife

StandardStreams.begin(for: "nigh-bench")
await Benchmark.run(CommandLine.arguments)
