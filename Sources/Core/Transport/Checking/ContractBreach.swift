/// A rule that was broken, and by what.
struct ContractBreach: Error {
    let rule: ContractRule
    /// What was seen, for whoever made the transport.
    let detail: String

    init(_ rule: ContractRule, _ detail: String) {
        self.rule = rule
        self.detail = detail
    }

    /// What a program is told of it.
    func error(of scheme: String) -> NighError {
        NighError(
            rule.stage, .contractBroken(rule, detail), transport: scheme,
            advice: "this is a fault of the transport \"\(scheme)\", not of the network; tell whoever made it"
        )
    }
}
