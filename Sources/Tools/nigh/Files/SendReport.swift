import JSONText
import NighFiles

/// The report of `nigh send` at its end.
struct SendReport {
    let command: SendCommand
    let results: Results

    static let recipient = Results.Kind("recipient", plural: "recipients")

    init(command: SendCommand, _ results: Results) {
        self.command = command
        self.results = results
    }

    /// Reports the transfer to one device. Returns the exit status.
    func write(_ outcome: FileSender.Outcome, _ files: FilesToSend) -> ExitStatus {
        reportFiles(outcome, of: nil)
        let failed = outcome.results.filter { $0.error != nil }
        let error = outcome.error ?? (failed.isEmpty ? nil : failure(failed, of: outcome))
        guard let error else {
            results.summarize(members(outcome), lines: lines(outcome, files))
            return .success
        }
        remarkFailures(outcome)
        results.summarize(members(outcome) + [.init("error", Results.json(of: error))], lines: [])
        if results.isText { results.fail(error) } else { results.remark("\(error)") }
        return .failed
    }

    /// Reports the transfers to several devices. Returns the exit status.
    func write(_ outcomes: [FileSender.Outcome], _ files: [FilesToSend], to peers: [PeerChoice]) -> ExitStatus
    {
        var failures = 0
        for (outcome, (files, peer)) in zip(outcomes, zip(files, peers)) {
            reportFiles(outcome, of: outcome.peer.map { "\($0.id)" })
            let failed = outcome.results.filter { $0.error != nil }
            let error = outcome.error ?? (failed.isEmpty ? nil : failure(failed, of: outcome))
            results.report(
                Self.recipient,
                members(outcome) + (error.map { [.init("error", Results.json(of: $0))] } ?? []),
                lines: error == nil ? lines(outcome, files) : [])
            guard let error else { continue }
            failures += 1
            remarkFailures(outcome)
            results.remark(
                "\(outcome.peer.map { "\($0.name)" } ?? "\(peer)") did not get everything: \(error)")
        }
        results.summarize([.init("failed", .integer(failures))], lines: [])
        return failures == 0 ? .success : .failed
    }

    private func reportFiles(_ outcome: FileSender.Outcome, of peer: String?) {
        for result in outcome.results where result.item.kind == .file || result.error != nil {
            var members: [JSON.Member] = peer.map { [.init("peer_id", .text($0))] } ?? []
            members += [
                .init("path", .text(result.item.path)),
                .init("size_bytes", JSON(result.item.size ?? (result.isComplete ? outcome.stored : nil))),
                .init("sha256", JSON(result.hash?.hexadecimal)),
            ]
            if let error = result.error { members.append(.init("error", Results.json(of: error))) }
            results.report(FileSender.file, members, lines: [])
        }
    }

    private func remarkFailures(_ outcome: FileSender.Outcome) {
        guard outcome.error == nil, outcome.results.count > 1 else { return }
        for result in outcome.results where result.error != nil {
            results.remark("\(result.item.path) did not arrive: \(reason(result))")
        }
    }

    /// The failure of a transfer in which each file has its result.
    private func failure(_ failed: [FileResult], of outcome: FileSender.Outcome) -> FileFailure {
        guard outcome.results.count > 1 else { return FileFailure(reason(failed[0])) }
        return FileFailure("\(failed.count) of \(outcome.results.count) files and folders did not arrive")
    }

    private func reason(_ result: FileResult) -> String {
        if case .file(let fault)? = result.error?.cause { return fault.explanation }
        return result.error.map { "\($0.cause)" } ?? ""
    }

    private func members(_ outcome: FileSender.Outcome) -> [JSON.Member] {
        [
            .init("peer_id", JSON(outcome.peer.map { "\($0.id)" })),
            .init("peer_name", JSON(outcome.peer.map { "\($0.name)" })),
            .init("transport", JSON(outcome.peer?.transport)),
            .init(
                "size_bytes", JSON(outcome.progress?.total ?? (outcome.error == nil ? outcome.stored : nil))),
            .init("stored_bytes", .integer(outcome.stored)), .init("sent_bytes", .integer(outcome.sent)),
            .init("resumed_bytes", .integer(outcome.progress?.resumed ?? 0)),
            .init("conversations", .integer(outcome.conversations)), .init("cuts", .integer(outcome.cuts)),
            .init("duration_ms", .number(outcome.time.milliseconds)),
            .init("bytes_per_second", JSON(rate(of: outcome.sent, in: outcome.time))),
        ]
    }

    private func lines(_ outcome: FileSender.Outcome, _ files: FilesToSend) -> [Line] {
        let speed = rate(of: outcome.sent, in: outcome.time).map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let cuts = outcome.cuts > 0 ? ", cut \(outcome.cuts == 1 ? "once" : "\(outcome.cuts) times")" : ""
        let resumed = outcome.progress?.resumed ?? 0
        let rest = resumed > 0 ? ", \(ByteCount(resumed)) of it was there before" : ""
        let line =
            Line("sent ", .good)
            + Line(files.items.count == 1 ? files.label : TransferText.count(files.items), .strong)
            + Line(" to \(outcome.peer.map { "\($0.name)" } ?? ""): \(ByteCount(outcome.stored)) in ")
            + Line("\(durationText(outcome.time))\(speed)\(cuts)\(rest)")
        guard command.session.isVerbose, outcome.results.count == 1, let hash = outcome.results[0].hash else {
            return [line]
        }
        return [line + Line(", ") + Line("sha256 \(hash.hexadecimal)", .faint)]
    }
}
