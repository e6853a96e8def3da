/// A broken rule, and how it was broken.
struct ContractBreach: Error {
    let rule: ContractRule
    /// A description of the breach, for the author of the transport.
    let detail: String

    init(_ rule: ContractRule, _ detail: String) {
        self.rule = rule
        self.detail = detail
    }

    /// The error that the program gets.
    func error(of scheme: String) -> NighError {
        NighError(
            rule.stage, .contractBroken(rule, detail), transport: scheme,
            advice: "this is a bug in the transport \"\(scheme)\", not in the network; "
                + "report it to its author"
        )
    }
}
