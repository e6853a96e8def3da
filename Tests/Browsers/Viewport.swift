/// The part of a screen in which a browser shows a page.
package struct Viewport: Sendable {
    /// The width in CSS pixels.
    package let width: Int
    /// The height in CSS pixels.
    package let height: Int
    /// The pixels of the screen per CSS pixel, in each direction.
    package let scale: Double
    /// Whether it is a phone's: taps are touches, and Chromium heeds `<meta name="viewport">`.
    package let isPhone: Bool

    package init(width: Int, height: Int, scale: Double = 1, isPhone: Bool = false) {
        self.width = width
        self.height = height
        self.scale = scale
        self.isPhone = isPhone
    }

    /// A small phone, upright.
    package static let smallPhone = Viewport(width: 320, height: 568, scale: 2, isPhone: true)
    /// A usual phone, upright.
    package static let phone = Viewport(width: 390, height: 844, scale: 3, isPhone: true)
    /// A window on the screen of a computer.
    package static let desktop = Viewport(width: 1_280, height: 800)
}
