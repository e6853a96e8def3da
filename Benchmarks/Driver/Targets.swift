/// A result that Nigh is to reach: a ratio in one run, or bytes, or nanoseconds.
struct Target {
    let work: Work
    let metric: Metric
    let program: String
    /// Nil if the bound is absolute.
    let base: String?
    let bound: Double

    /// Returns the targets that apply to this column.
    static func all(of work: Work, in column: Work.Column) -> [Target] {
        let place =
            column.size <= 64
            ? 0
            : column.size <= 1 << 10
                ? 1
                : column.size <= 16 << 10
                    ? 2
                    : column.size <= 64 << 10 ? 3 : 4
        func target(_ program: String, _ bounds: [Double], to base: String = Program.base) -> Target {
            Target(work: work, metric: work.metrics[0], program: program, base: base, bound: bounds[place])
        }
        let toRadio = Program.bluetoothBase
        switch work {
        case .roundTrip:
            return [
                Target(work: work, metric: .median, program: "ours", base: toRadio, bound: 1.15),
                target("ours", [1.08, 1.08, 1.08, 1.05, 1.05]),
                target("ours-inbox", [1.20, 1.20, 1.20, 1.20, 1.20]),
                target("ours-pool", [0.90, 0.90, 0.90, 0.90, 0.90], to: "zeromq"),
                target("ours-tls", [1.15, 1.15, 1.05, 1, 1], to: Program.encryptedBase),
            ]
        case .packets:
            return [
                ("ours-packets", Program.packetBase, 1.25), ("ours-packets", "enet-unreliable", 1),
                ("ours-tls-packets", Program.encryptedPacketBase, 1.25),
                ("ours-tls-packets", "enet-unreliable", 1),
            ].map { Target(work: work, metric: .median, program: $0, base: $1, bound: $2) }
        case .stream:
            return [
                Target(work: work, metric: .rate, program: "ours", base: toRadio, bound: 0.9),
                target("ours", [0.90, 0.98, 0.98, 0.98, 0.98]),
                target("ours-inbox", [0.50, 0.90, 0.95, 0.95, 0.95]),
                target("ours-tls", [0.90, 0.90, 0.95, 0.95, 0.95], to: Program.encryptedBase),
            ]
        case .bytes: return [target("ours-tls-bytes", [0.9, 0.9, 0.9, 0.9, 0.9], to: Program.encryptedBase)]
        case .beside:
            return [("ours-beside", "ours-quiet"), ("ours-tls-beside", "ours-tls-quiet")].map {
                Target(work: work, metric: .high, program: $0, base: $1, bound: 1.5)
            }
        case .calls:
            // A call costs at most half of gRPC's, and at most 1.6 of a message there and back between two tasks.
            return [
                (["ours-questions", "ours-actor"], Program.callBase, "ours-pool"),
                (["ours-tls-questions", "ours-tls-actor"], Program.encryptedCallBase, "ours-tls-pool"),
            ].flatMap { programs, base, messages in
                programs.flatMap { program in
                    [(base, 0.5), (messages, 1.6)].map {
                        Target(work: work, metric: .median, program: program, base: $0, bound: $1)
                    }
                }
            }
        case .callsAtOnce: return []
        case .broadcast: return [target("ours", [0.95, 0.95, 0.95, 0.95, 0.95])]
        case .connect:
            return [
                target("ours", [3, 3, 3, 3, 3]),
                target("ours-tls", [1.05, 1.05, 1.05, 1.05, 1.05], to: Program.encryptedBase),
            ]
        case .found:
            return ["ours-daemon", "ours-embedded"].map {
                Target(work: work, metric: .median, program: $0, base: nil, bound: 250e6)
            }
        case .files:
            return [(Program.fileBase, 0.9), ("scp", 1), ("socat", 1)].map {
                Target(work: work, metric: .throughput, program: "ours-file", base: $0, bound: $1)
            }
                + [Metric.sending, .receiving].map {
                    Target(work: work, metric: $0, program: "ours-file", base: nil, bound: 64 * 1_048_576)
                }
        case .forwarded:
            return [
                Target(
                    work: work, metric: .throughput, program: "ours-forward", base: Program.forwardBase,
                    bound: 1)
            ]
        case .natsRoundTrip:
            return [("ours-nats", Program.natsBase), ("ours-tls-nats", Program.encryptedNATSBase)].map {
                Target(work: work, metric: .median, program: $0, base: $1, bound: 1.5)
            }
        case .natsStream:
            guard place == 3 else { return [] }
            return [("ours-nats", Program.natsBase), ("ours-tls-nats", Program.encryptedNATSBase)].map {
                Target(work: work, metric: .rate, program: $0, base: $1, bound: 0.6)
            }
        case .idle:
            return [("ours", 8), ("ours-tls", 24)].flatMap { program, kibibytes in
                [Metric.accepting, .calling].map {
                    Target(work: work, metric: $0, program: program, base: nil, bound: kibibytes * 1_024)
                }
            }
        }
    }

    /// Messaging libraries, each list with the program that is to be ahead of them in everything.
    static let libraries = [
        ("ours", ["zeromq", "nng", "nanomsg", "enet"]), ("ours-tls", ["zeromq-curve", "nng-tls"]),
    ]

    /// Returns the measured value; nil if there is none.
    func reached(_ results: Results, _ column: Work.Column) -> Results.Spread? {
        guard let base else {
            return results.spread(work, column, metric, of: program)
        }
        return results.ratio(work, column, metric, of: program, to: base)
    }

    /// Whether the bound is the most that it may be.
    var isCeiling: Bool { work.measuresCost || metric.isMemory }

    func isMet(by reached: Results.Spread) -> Bool {
        isCeiling ? reached.median <= bound : reached.median >= bound
    }
}
