// Trials of the modules MultipeerConnectivity and GameKit: `Trials` lists them. NIGH_TRANSPORTS chooses the transports;
// by default it is TCP on the loopback interface.
import MultipeerConnectivity

NighMultipeer.configure { $0.transports = transports }
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
case "latency": try await Comparison.latency(number ?? 5_000)
case "throughput": try await Comparison.throughput(number ?? 5)
case "answer": try await contenders.first { $0.name == arguments[1] }?.answer(in: arguments[2])
default:
    print("usage: Trials connects|cycles|crossings|dropped|streams|slow|resource|latency|throughput [NUMBER]")
}
