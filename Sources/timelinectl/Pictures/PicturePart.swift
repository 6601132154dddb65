/// A size in points; infinite where nothing limits a space.
struct PictureSize: Equatable {
    static let unlimited = PictureSize(width: .infinity, height: .infinity)

    var width = 0.0
    var height = 0.0

    /// The length along a row, or along a column.
    subscript(isRow isRow: Bool) -> Double {
        get { isRow ? width : height }
        set { if isRow { width = newValue } else { height = newValue } }
    }

    func with(_ length: Double, isRow: Bool) -> PictureSize {
        PictureSize(width: isRow ? length : width, height: isRow ? height : length)
    }

    func fits(_ space: PictureSize) -> Bool { width <= space.width && height <= space.height }

    /// Returns the size with the lengths of another where it has no limit.
    func limited(_ other: PictureSize) -> PictureSize {
        with(width.isFinite ? width : other.width, isRow: true)
            .with(height.isFinite ? height : other.height, isRow: false)
    }
}

/// A part of a picture, within its size unless the app moves it.
struct PicturePart {
    var size = PictureSize()
    var svg = ""
    /// The directions in which it takes all the space that is left: `true` for along a row.
    var growth: Set<Bool> = []
    /// Whether it is only space along its stack.
    var isSpacer = false
    /// Whether content is left out, shortened or made smaller because it does not fit.
    var isCut = false
}
