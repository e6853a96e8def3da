/// What the command line asks for.
struct Options {
    static let allSizes = [16, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20]

    var works: [Work] = Work.allCases
    /// Nil takes those that each work stands for.
    var sizes: [Int]?
    /// Names of programs; nil means all.
    var programs: [String]?
    /// To how many peers is broadcast.
    var crowds = [8, 100, 1_000]
    var rounds = 3
    var seconds = 0.33
    var pinning: Pinning?
    var peersFolder = ".build/bench"
    var discovery = "Benchmarks/Discovery"
    var resultsFolder = ".build/bench"
    var wantsHelp = false
    /// Between two adapters, inside a machine of the Bluetooth lab; else on loopback.
    var isOverBluetooth = false
    /// How often a connection is made where that is measured.
    var connections = 50

    /// Where the two programs run.
    enum Pinning: String {
        /// Both on one processor.
        case one
        /// On one each.
        case each
        /// Wherever the kernel likes.
        case none
    }

    struct Unusable: Error {
        let words: String
    }

    init(_ arguments: ArraySlice<String>) throws(Unusable) {
        var rest = arguments
        while let flag = rest.popFirst() {
            if flag == "--help" || flag == "-h" {
                wantsHelp = true
                continue
            }
            if flag == "--bluetooth" {
                goOverBluetooth()
                continue
            }
            guard let value = rest.popFirst() else { throw Unusable(words: "\(flag) needs a value") }
            switch flag {
            case "--only":
                works = try Self.list(value) { Work(rawValue: $0) }
            case "--sizes": sizes = try Self.list(value, Self.size)
            case "--peers": programs = try Self.list(value) { $0 }
            case "--crowds": crowds = try Self.list(value) { Self.number($0, in: 1...4_000) }
            case "--rounds": rounds = try Self.one(value) { Self.number($0, in: 1...100) }
            case "--seconds":
                seconds = try Self.one(value) { Double($0).flatMap { $0 > 0 && $0 <= 600 ? $0 : nil } }
            case "--pin": pinning = try Self.one(value) { Pinning(rawValue: $0) }
            case "--programs": peersFolder = value
            case "--discovery": discovery = value
            case "--results": resultsFolder = value
            default: throw Unusable(words: "unknown argument \"\(flag)\"")
            }
        }
        let known = Program.all(self, ownIn: "").map(\.name)
        guard programs != [], works != [], sizes != [], crowds != [] else {
            throw Unusable(words: "an empty list measures nothing")
        }
        for name in programs ?? [] where !known.contains(name) {
            throw Unusable(words: "no program \"\(name)\"; there are \(known.joined(separator: ", "))")
        }
    }

    /// What suits that, for all that is said of it later.
    private mutating func goOverBluetooth() {
        isOverBluetooth = true
        works = [.roundTrip, .stream, .connect, .found]
        (seconds, connections) = (1, 20)
        discovery = "Benchmarks/BluetoothDiscovery"
    }

    private static func one<Value>(_ text: String, _ read: (String) -> Value?) throws(Unusable) -> Value {
        guard let value = read(text) else {
            throw Unusable(words: "\"\(text)\" is not what is expected there")
        }
        return value
    }

    private static func list<Value>(_ text: String, _ read: (String) -> Value?) throws(Unusable) -> [Value] {
        var values: [Value] = []
        for word in text.split(separator: ",") { values.append(try one(String(word), read)) }
        return values
    }

    private static func number(_ text: String, in range: ClosedRange<Int>) -> Int? {
        Int(text).flatMap { range.contains($0) ? $0 : nil }
    }

    private static func size(_ text: String) -> Int? {
        let unit = text.hasSuffix("K") ? 1 << 10 : text.hasSuffix("M") ? 1 << 20 : 1
        return number(unit == 1 ? text : String(text.dropLast()), in: 1...(16 << 20) / unit)
            .flatMap { $0 * unit >= 16 ? $0 * unit : nil }
    }

    static let help = """
        usage: bench [--bluetooth] [--only WORK,…] [--sizes 64,64K,…] [--peers NAME,…] [--rounds N] [--seconds S] …

        Has Nigh and other libraries do the same work on loopback, in turn, and prints what that shows as ratios.

          --bluetooth     instead, Nigh and bare sockets between the adapters hci1 and hci0; to be given first, and run where
                          there are two that hear each other (make bench-bluetooth)
          --only LIST     round-trip, stream, broadcast, connect, idle, found; else all (found needs root)
          --sizes LIST    message sizes from 16 bytes to 16M, K and M allowed; else those that suit each work
          --peers LIST    tcp, libuv, zeromq, nng, nanomsg, enet, ours, ours-inbox, ours-pool; encrypted tls,
                          zeromq-curve, nng-tls, ours-tls, ours-tls-inbox; for found avahi, ours-daemon, ours-embedded;
                          over Bluetooth rfcomm, bluetoothctl, sdptool, ours, ours-tls; else all
          --crowds LIST   to how many peers is broadcast (8,100,1000)
          --rounds N      how often everybody has a turn; the order is reversed each time (3)
          --seconds S     how long a turn is measured, after a warm-up (0.33; 1 over Bluetooth)
          --pin WHERE     both programs on `one` processor, one on `each`, or on any (`none`); else `one` for round trip
                          and connect, `none` for the rest
          --programs DIR  where the peers were built (.build/bench)
          --discovery FILE  the script that makes two hosts (Benchmarks/Discovery)
          --results DIR   where results.json and results.md go (.build/bench)

        """
}
