import ProgramSupport

StandardStreams.begin(for: "soak")
Soak.main(Array(CommandLine.arguments.dropFirst()))
