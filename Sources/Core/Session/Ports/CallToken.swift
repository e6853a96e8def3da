/// Identifies a call of the program, whose outcome is reported with `Directive.finish`.
struct CallToken: Hashable {
    let number: UInt64
}
