import Glibc
import ProgramLife

StandardStreams.begin(for: "fourinarow")
// Before there is any other thread, so that none of them takes a signal away.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = ProgramNeeds.shortage { exit(FourInARowProgram.refuse(shortage)) }
Task.detached { exit(await FourInARowProgram.run(arguments)) }
Interrupts.wait()
