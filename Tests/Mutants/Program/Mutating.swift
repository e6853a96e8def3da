import Glibc

/// A run: builds the mutants, tries one after the other, and counts the results.
struct Mutating {
    let options: Options
    let tell: (String) -> Void

    /// The result of a run.
    struct Score: Equatable {
        var caught = 0
        var survived = 0
        var harmless = 0

        var effective: Int { caught + survived }
        /// Rounded down.
        var percent: Int { effective == 0 ? 100 : caught * 100 / effective }
    }

    /// Returns whether enough mutants were caught.
    func run() throws -> Bool {
        var package = try MutatedPackage(seed: options.seed)
        let harmless = try Harmless((try? Folder.text(of: Harmless.file)) ?? "")
        let stale = harmless.reasons.keys.filter { !package.keys.contains($0) }.sorted()
        for key in stale { tell("\(Harmless.file) speaks of what is not there any more:\n\(key)") }
        try package.build(options.count, tell: tell)
        if options.isListing {
            for mutant in package.mutants { tell(Self.words(for: mutant)) }
            return true
        }
        let trials = try measured(package.trials(worlds: options.worlds))
        var score = Score()
        var survivors: [MutatedPackage.Mutant] = []
        for mutant in package.mutants where options.only.isEmpty || options.only.contains(mutant.number) {
            if let reason = harmless.reason(for: mutant.site), !options.only.contains(mutant.number) {
                score.harmless += 1
                tell("\(Self.words(for: mutant))\n    without effect: \(reason)")
            } else if let words = try self.words(ofCatching: mutant.number, trials) {
                score.caught += 1
                tell("\(Self.words(for: mutant))\n    caught by \(words)")
            } else {
                score.survived += 1
                survivors.append(mutant)
                tell("\(Self.words(for: mutant))\n    SURVIVES")
            }
        }
        report(score, survivors)
        let isEmpty = score.effective + score.harmless == 0
        if isEmpty { tell("nothing was tried") }
        return !isEmpty && score.percent >= options.least && stale.isEmpty
    }

    private func report(_ score: Score, _ survivors: [MutatedPackage.Mutant]) {
        if !survivors.isEmpty { tell("\nsurvivors:") }
        for mutant in survivors { tell("\(Self.words(for: mutant))\n    \(mutant.site.source)") }
        tell(
            "\nseed \(options.seed): of \(score.effective + score.harmless) mutants \(score.harmless) are argued to be without "
                + "effect; of the other \(score.effective), \(score.caught) were caught: \(score.percent) %")
    }

    private static func words(for mutant: MutatedPackage.Mutant) -> String {
        "\(mutant.number) \(mutant.site.file):\(mutant.site.line): \(mutant.site.change)"
    }

    /// Runs everything with no mutant switched on. All of it must pass, and the time it takes is the measure for
    /// timeouts.
    private func measured(_ trials: [Trial]) throws -> [Trial] {
        try trials.map { trial in
            let before = Self.processorTime
            if case .caught(let words) = try trial.run(mutant: 0) {
                throw Folder.Failure(description: "the \(trial.name) fail with nothing changed: \(words)")
            }
            let usual = max(1, Self.processorTime - before)
            tell("the \(trial.name) take \(usual) s of processor time")
            var trial = trial
            trial.limits = Trial.Limits(usual: usual)
            return trial
        }
    }

    /// The processor time of all children that have ended, in whole seconds.
    private static var processorTime: Int {
        var usage = rusage()
        getrusage(RUSAGE_CHILDREN.rawValue, &usage)
        return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
    }

    private func words(ofCatching mutant: Int, _ trials: [Trial]) throws -> String? {
        for trial in trials {
            if case .caught(let words) = try trial.run(mutant: mutant) { return "\(trial.name): \(words)" }
        }
        return nil
    }
}
