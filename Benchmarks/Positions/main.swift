import FoundationEssentials
import Glibc
import Nigh
import NighLoop

// Measures how old the newest position of a player is at another player, as a game would send it: 60 values of 200
// bytes a second. Only the newest counts. A file may travel to the same peer meanwhile. `Tests/Lab/trials/positions`
// runs both programs and compares.
//
//   bench-positions receive PORT FOLDER                   prints what it has seen
//   bench-positions send ADDRESS SECONDS yes|no [FILE]    sends the values or none, and the file
//
// With NIGH_DATAGRAMS=off values travel on the link. Both programs read the same clock, so they must run on one
// machine.

let words = Array(CommandLine.arguments.dropFirst())
let byteCount = 200
/// The number of values that are sent before anything is measured, so that the path has been tried.
let warmUp = 60
/// The byte of a value that says whether it is measured. Before it is the time when the value was sent.
let markIndex = 8
let pause = Duration.nanoseconds(1_000_000_000 / 60)
/// How many of the ages of the newest value are taken, each a millisecond after the one before.
let step: Int64 = 1_000_000

func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

func adjust(_ settings: inout SessionSettings) {
    settings.identity = .temporary
    settings.datagrams = ProcessInfo.processInfo.environment["NIGH_DATAGRAMS"] != "off"
}

/// The ages that the newest value had, in milliseconds. Confined to the task that reads messages.
struct Ages {
    private var ages: [Int64] = []
    private var newest: Int64?
    private var sampledAt: Int64 = 0
    private(set) var received = 0

    /// Takes in that a value has come that was sent at `sentAt`.
    mutating func add(_ sentAt: Int64, at moment: Int64) {
        received += 1
        if let newest {
            while sampledAt + step <= moment {
                sampledAt += step
                ages.append(sampledAt - newest)
            }
        } else {
            sampledAt = moment
        }
        newest = max(newest ?? sentAt, sentAt)
    }

    /// The age that only one in a hundred samples exceeds, for 0.99.
    mutating func percentile(_ share: Double) -> String {
        ages.sort()
        guard !ages.isEmpty else { return "-" }
        return String(format: ages[min(Int(share * Double(ages.count)), ages.count - 1)])
    }

    private func String(format nanoseconds: Int64) -> String { "\(Double(nanoseconds / 10_000) / 100)" }
}

func receive(at port: String, into folder: String) async throws {
    let session = try Session(
        service: "positions", name: "receiver", transports: "tcp:interface=lo,mdns=off,port=\(port)"
    ) {
        adjust(&$0)
        $0.files = .everyone(into: folder)
        $0.browses = false
        $0.connectsAutomatically = true
    }
    var ages = Ages()
    for await message in session.messages {
        let moment = now()
        guard !message.isReliable else { break }
        message.withBytes { bytes in
            guard bytes.unsafeLoad(fromByteOffset: markIndex, as: UInt8.self) != 0 else { return }
            ages.add(bytes.unsafeLoadUnaligned(as: Int64.self), at: moment)
        }
    }
    print(
        "received \(ages.received), p50 \(ages.percentile(0.5)), p99 \(ages.percentile(0.99)), max \(ages.percentile(1))"
    )
    await session.close()
}

func send(to address: String, for seconds: Double, values: Bool, file: String?) async throws {
    let session = try Session(service: "positions", name: "sender", transports: "tcp:interface=lo,mdns=off") {
        adjust(&$0)
        $0.advertises = false
    }
    let peer = try await session.invite(at: address)
    var value = [UInt8](repeating: 0, count: byteCount)
    func show() {
        withUnsafeBytes(of: now()) { value.replaceSubrange(0..<8, with: $0) }
        try? peer.sendUnreliably(bytes: value)
    }
    for _ in 0..<warmUp {
        show()
        try await Task.sleep(for: pause)
    }
    value[markIndex] = 1
    let start = ContinuousClock.now
    let transfer = if let file { try await peer.send(file: file) } else { nil as FileTransfer? }
    var turns = 0
    var fileEnd: Duration?
    while ContinuousClock.now - start < .seconds(seconds) {
        if values { show() }
        turns += 1
        if fileEnd == nil, let progress = transfer?.progress, let total = progress.total, total > 0,
            progress.done == total
        {
            fileEnd = ContinuousClock.now - start
        }
        try await Task.sleep(until: start + pause * turns)
    }
    let statistics = await session.lowLevel.statistics().peers[peer.id]
    print("sent \(values ? turns : 0), packets \(session.peer(peer.id).hasDatagrams)")
    if let transfer {
        let time = (fileEnd ?? ContinuousClock.now - start) / .seconds(1)
        print("file \(Int(Double(transfer.progress.done) / time)) bytes a second, whole \(fileEnd != nil)")
    }
    if let datagrams = statistics?.datagrams { print(datagrams) }
    transfer?.cancel()
    try await peer.send(bytes: [0])
    // The rest of the file may still be on its way, and need not arrive.
    try? await peer.disconnect()
    await session.close()
}

switch (words.first, words.count) {
case ("receive", 3): try await receive(at: words[1], into: words[2])
case ("send", 4...5):
    guard let seconds = Double(words[2]) else { exit(2) }
    try await send(
        to: words[1], for: seconds, values: words[3] == "yes", file: words.count > 4 ? words[4] : nil)
default:
    print("usage: bench-positions receive PORT FOLDER | send ADDRESS SECONDS yes|no [FILE]")
    exit(2)
}
