import NighCore
import NighFiles

// Files beside messages.

extension SessionConformance {
    static let fileChecks = [
        ConformanceCheck(
            "files",
            "a folder goes on where an earlier transfer stopped, and arrives whole while links are cut and messages pass by"
        ) { testbed in
            let files = MemoryFiles(
                [("photos/", []), ("photos/large", Testbed.content(400_000)), ("photos/empty", [])]
                    + (0..<20).map { ("photos/\($0)", Testbed.content(1_000 + $0)) })
            let disk = MemoryDisk()
            // Part of a file that was received once, and one that has changed since then.
            disk.parts["photos/large"] = Array(Testbed.content(400_000).prefix(150_000))
            disk.parts["photos/3"] = [1, 2, 3]
            let receiving = FileEnd(IncomingFiles(), on: disk, testbed)
            let (first, second) = try testbed.connectedSessions {
                $0.layers.append(TestLayer(streams: .files) { receiving.begin(on: $0) })
            }
            // By bytes, so that something is under way each time, however fast the wire is.
            try testbed.controlFaults(of: first) { $0.plan.cutAfterBytes = 60_000 }
            receiving.probe = second
            let stream = PendingResult<ByteStream>("opening a stream for files", on: testbed)
            first.session.openStream(named: "photos", to: second.id, for: .files) {
                stream.complete(with: $0)
            }
            let sending = FileEnd(OutgoingFiles(files), on: disk, testbed)
            sending.probe = first
            sending.begin(on: try stream.value())
            let transfer = MessageTransfer(
                testbed, from: first, to: second, lengths: SessionConformance.lengths)
            try testbed.waitForCuts(4, at: first, second)
            for end in [sending, receiving] { try end.outcome.value() }
            try transfer.finish()
            for (item, content) in zip(files.items, files.contents) {
                let hasArrived =
                    item.kind == .folder ? disk.folders.contains(item.path) : disk.files[item.path] == content
                try testbed.expect(hasArrived, "\(item.path) has arrived as it was sent")
            }
            try testbed.expect(disk.parts.isEmpty, "nothing else is left")
        }
    ]
}

/// One end of a transfer, which a task of its session moves.
///
/// `@unchecked Sendable`: the task touches it from its begin to its outcome, the check before and after that.
private final class FileEnd: @unchecked Sendable {
    var probe: SessionProbe?
    let outcome: PendingResult<Int>
    private let side: any TransferSide
    private let disk: MemoryDisk
    private let testbed: Testbed

    init(_ side: any TransferSide, on disk: MemoryDisk, _ testbed: Testbed) {
        self.side = side
        self.disk = disk
        self.testbed = testbed
        outcome = PendingResult(
            "the transfer of \(side is OutgoingFiles ? "a sender" : "a receiver")", on: testbed)
    }

    func begin(on stream: ByteStream) {
        guard let probe else { return testbed.recordViolation("files come before they are sent") }
        testbed.startTask(for: probe) { [self, loop = probe.session.loop] in
            await move(stream, at: { loop.now })
        }
    }

    private func move(_ stream: ByteStream, at now: () -> Moment) async {
        let steps = TransferSteps(side, on: stream)
        while true {
            if let side = side as? IncomingFiles, side.isDeciding {
                side.accept(into: disk.store(for: side.items))
            }
            switch steps.step(at: now()) {
            case .none: continue
            case .activity(let bytes, let room): await stream.waitForActivity(bytes: bytes, room: room)
            case .input, .time: return testbed.recordViolation("a transfer waits for what is not awaited")
            case .over(.complete): return outcome.complete(with: .success(side.progress.itemsDone))
            case .over(let ending):
                let error =
                    if case .lost(let error) = ending { error } else { NighError(.receiving, .cancelled) }
                return outcome.complete(with: .failure(error))
            }
        }
    }
}
