/// The style in which a terminal writes, in the colours that the terminal has.
struct Pen: Equatable, Sendable {
    var foreground: UInt8?
    var background: UInt8?
    var accents: Style.Accents

    static let plain = Pen(foreground: nil, background: nil, accents: [])

    init(_ style: Style, _ depth: ColourDepth) {
        self.init(
            foreground: style.foreground.index(in: depth), background: style.background.index(in: depth),
            accents: style.accents)
    }

    private init(foreground: UInt8?, background: UInt8?, accents: Style.Accents) {
        self.foreground = foreground
        self.background = background
        self.accents = accents
    }

    /// The pen without attributes that are invisible on a space.
    var onSpaces: Pen {
        guard accents.isDisjoint(with: [.underline, .reverse]) else { return self }
        return Pen(foreground: nil, background: background, accents: [])
    }

    /// Returns the bytes that change the terminal's pen from `before` to this one. `before` is nil if it is not known.
    func change(from before: Pen?) -> [UInt8] {
        guard before != self else { return [] }
        let anew = switchesOn(from: .plain)
        let whole = anew.isEmpty ? "" : "0;" + Self.joined(anew)
        guard let before else { return Array("\u{1B}[\(whole)m".utf8) }
        let step = Self.joined(switchesOff(from: before) + switchesOn(from: before))
        return Array("\u{1B}[\(step.utf8.count <= whole.utf8.count ? step : whole)m".utf8)
    }

    private static func joined(_ parameters: [Int]) -> String {
        parameters.map(String.init).joined(separator: ";")
    }

    private func switchesOff(from before: Pen) -> [Int] {
        var parameters: [Int] = []
        let lost = before.accents.subtracting(accents)
        // Bold and dim are switched off together.
        if !lost.isDisjoint(with: [.bold, .dim]) { parameters.append(22) }
        if lost.contains(.underline) { parameters.append(24) }
        if lost.contains(.reverse) { parameters.append(27) }
        if foreground == nil, before.foreground != nil { parameters.append(39) }
        if background == nil, before.background != nil { parameters.append(49) }
        return parameters
    }

    private func switchesOn(from before: Pen) -> [Int] {
        var parameters: [Int] = []
        var kept = before.accents
        if !before.accents.subtracting(accents).isDisjoint(with: [.bold, .dim]) {
            kept.subtract([.bold, .dim])
        }
        let gained = accents.subtracting(kept)
        if gained.contains(.bold) { parameters.append(1) }
        if gained.contains(.dim) { parameters.append(2) }
        if gained.contains(.underline) { parameters.append(4) }
        if gained.contains(.reverse) { parameters.append(7) }
        if let foreground, foreground != before.foreground {
            parameters += Self.parameters(of: foreground, base: 30)
        }
        if let background, background != before.background {
            parameters += Self.parameters(of: background, base: 40)
        }
        return parameters
    }

    private static func parameters(of colour: UInt8, base: Int) -> [Int] {
        switch colour {
        case 0..<8: [base + Int(colour)]
        case 8..<16: [base + 60 + Int(colour) - 8]
        default: [base + 8, 5, Int(colour)]
        }
    }
}
