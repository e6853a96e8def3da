import Glibc
import ProgramLife

StandardStreams.begin(for: "nigh")
// Before there is any other thread, so that none of them takes a signal away.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = ProgramNeeds.shortage { exit(NighProgram.refuse(arguments, shortage)) }
Task.detached { exit(await NighProgram.run(arguments)) }
Interrupts.wait()
