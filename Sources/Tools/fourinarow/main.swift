import Glibc
import ProgramSupport

StandardStreams.begin(for: "fourinarow")
// Before any other thread exists, so that no other thread receives a signal.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = SystemRequirements.shortage { exit(FourInARowProgram.reportShortage(shortage)) }
Task.detached { exit(await FourInARowProgram.run(arguments)) }
Interrupts.wait()
