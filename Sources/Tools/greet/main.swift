import Glibc
import ProgramLife

StandardStreams.begin(for: "greet")
// Before there is any other thread, so that none of them takes a signal away.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = ProgramNeeds.shortage {
    LineOutput.complain("\(shortage)", by: "greet")
    exit(ProgramNeeds.status)
}
Task.detached { exit(await Greet.run(arguments)) }
Interrupts.wait()
