package diagnosis

import "fmt"

// MatrixDoubtful is the code of a W that readings contradict.
const MatrixDoubtful = "matrix-doubtful"

// surelyBent is from how many standard errors on residuals grow with parameters of sensors by more than chance: of a hundred runs each with delays that W is linear in, the largest was 4.1.
const surelyBent = 5

// Bent says that W is not linear in parameters of sensors, where residuals grow with them by that many standard errors; nil where they do not.
func Bent(by float64) *Warning {
	if by < surelyBent {
		return nil
	}
	return &Warning{Code: MatrixDoubtful, Message: fmt.Sprintf("residuals of sensors grow with their parameters, by %.0f standard errors: W is not linear in parameters as large as these; give W and its derivatives nearer to the true ones; error bars take W for linear, and do not hold", by)}
}
