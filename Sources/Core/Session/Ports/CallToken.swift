/// Identifies a call of the program. Its outcome is reported with `Directive.finish`.
struct CallToken: Hashable {
    let number: UInt64
}
