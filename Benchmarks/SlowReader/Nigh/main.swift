import Glibc
import Nigh

// A session with the settings that it has by default, beside the programs in C: pace.h has their command line.

let words = Array(CommandLine.arguments.dropFirst())

/// The longest delay that the machine is taken to be the reason for.
let longestDelay = Duration.seconds(0.5)

func report(_ what: String, _ count: Int) {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    print("\(what) \(Double(time.tv_sec) + Double(time.tv_nsec / 1_000_000) / 1_000) \(count)")
    fflush(nil)
}

func session(_ name: String, port: String? = nil) throws -> Session {
    let transport = "tcp:interface=lo,mdns=off" + (port.map { ",port=\($0)" } ?? "")
    return try Session(service: "bench", name: name, transports: transport) {
        $0.identity = .temporary
        let limits = $0.limits
        print("settings sendBuffer \(limits.sendBuffer) bytes, receiveWindow \(limits.receiveWindow) bytes")
    }
}

/// Reads until the message of one byte, and sleeps in between.
func read(at port: String, awake: Double, asleep: Double) async throws {
    let session = try session("reader", port: port)
    session.connectsAutomatically = true
    var received = 0
    var begun: ContinuousClock.Instant?
    var hasSlept = false
    for await message in session.messages {
        guard message.bytes.count > 1 else { break }
        received += 1
        let start = begun ?? .now
        begun = start
        guard !hasSlept, ContinuousClock.now >= start + .seconds(awake) else { continue }
        hasSlept = true
        report("asleep", received)
        try await Task.sleep(for: .seconds(asleep))
        report("awake", received)
    }
    report("received", received)
    await session.close()
}

/// Sends at the given pace, and waits where the session waits.
func send(to port: String, size: Int, rate: Double, seconds: Double) async throws {
    let session = try session("sender")
    let peer = try await session.invite(at: "tcp://127.0.0.1:\(port)")
    let bytes = [UInt8](repeating: 7, count: size)
    let begun = ContinuousClock.now
    var (sent, next) = (0, begun)
    while next < begun + .seconds(seconds) {
        try await peer.send(bytes: bytes)
        sent += 1
        report("sent", sent)
        // A busy machine may delay it, and then it catches up. Where the session held it back, it goes on at the same
        // pace.
        next += .seconds(1 / rate)
        if .now > next + longestDelay { next = .now }
        try await Task.sleep(until: next)
    }
    try await peer.send(bytes: [0])
    report("sent", sent)
    await session.close()
}

switch (words.first, words.dropFirst().compactMap(Double.init)) {
case ("read", let numbers) where numbers.count == 3:
    try await read(at: words[1], awake: numbers[1], asleep: numbers[2])
case ("send", let numbers) where numbers.count == 4:
    try await send(to: words[1], size: Int(numbers[1]), rate: numbers[2], seconds: numbers[3])
default:
    print("usage: bench-slow-reader read PORT AWAKE ASLEEP | send PORT SIZE RATE SECONDS")
    exit(2)
}
