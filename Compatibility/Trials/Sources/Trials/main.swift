// Trials of the module MultipeerConnectivity: `Trials` lists them. NIGH_TRANSPORTS chooses what carries them; by default it is TCP on
// the loopback interface.
import MultipeerConnectivity
import Nigh

if ProcessInfo.processInfo.environment["NIGH_TRANSPORTS"] == nil {
    NighMultipeer.configure { $0.transports = "tcp:interface=lo,mdns=embedded" }
}
let arguments = Array(CommandLine.arguments.dropFirst())
let number = arguments.dropFirst().first.flatMap { Int($0) }

func pair(_ service: String = "trial-\(Int.random(in: 0...99_999_999))") -> (Party, Party) {
    let (puma, lynx) = (Party("Puma", service: service), Party("Lynx", service: service))
    puma.start()
    lynx.start()
    return (puma, lynx)
}

switch arguments.first {
case "connects": connects(number ?? 1_000)
case "cycles": cycles(number ?? 200)
case "crossings": crossings(number ?? 1_000)
case "dropped": dropped(number ?? 10_000)
case "streams": streams(number ?? 20)
case "slow": slow(TimeInterval(number ?? 10))
case "resource": resource(number ?? 1_000)
case "latency": await Comparison.latency(number ?? 5_000)
case "throughput": await Comparison.throughput(number ?? 300_000)
case "echo-module": Comparison.echoByModule(arguments[1])
case "echo-nigh": try await Comparison.echoByNigh(arguments[1])
default:
    print("usage: Trials connects|cycles|crossings|dropped|streams|slow|resource|latency|throughput [NUMBER]")
}
